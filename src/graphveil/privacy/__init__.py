"""What we promise: promises, mechanisms, noise, accounting, plans, ledgers, curators and certificates."""

import graphveil.privacy.local  # noqa: F401  the local promise joins the family that ``Promise`` parses and reads
