"""Whether a Parquet file is still the one that was written, told from its footer.

The footer lists every column of every row group with its place, size, number of values and extremes, and a random text that the
file was given when it was written (``MARK``); a few kilobytes that every reader needs first. Whoever writes the file anew, even
with the same records, writes another footer. The text also keeps digests from telling anything about the records: nobody who
does not have the file can guess it. Bytes that are changed in place, between two footers, are not noticed here.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

END = 8  # bytes: the length of the footer, and Parquet's magic
MARK = "written"


def mark() -> dict[str, str]:
    """What sets a file apart from all others, for the metadata of its footer."""
    return {MARK: secrets.token_hex(16)}


def footer_digest(file: Any) -> str:
    """SHA-256 of size and footer of an open Parquet file (``pyarrow.OSFile``), which is left at its start."""
    size = file.size()
    file.seek(max(size - END, 0))
    length = int.from_bytes(file.read(4), "little")
    file.seek(max(size - END - length, 0))
    footer = file.read(length)
    file.seek(0)
    return hashlib.sha256(size.to_bytes(8, "little") + footer).hexdigest()
