"""A device that takes part in a collection with nothing but Python: it randomises its own label once and sends it.

    python examples/device.py URL-OF-COLLECTION TOKEN ID LABEL CONTACT...

Its label never leaves; what leaves is remembered in ``device-ID.json``, so a second run sends the same bytes. Its contacts are
sent in the clear, because this collection (method ``local``, edges raw) says so.
"""

import json
import math
import os
import pathlib
import secrets
import sys
import time
import urllib.error
import urllib.request

MOST = 4.0  # the epsilon that this device allows
url, token, name, label, *contacts = sys.argv[1:]
stage = json.load(urllib.request.urlopen(url))["protocol"]["stages"]["first"]
keep, classes = stage["rounds"]["labels"]["keep"], stage["rounds"]["labels"]["classes"]
odds = (
    keep * (classes - 1) / (1 - keep)
)  # of the truth against any other class: e^epsilon, whatever the protocol calls it
if odds > math.exp(MOST) or stage["raw"] != ["edges"] or list(stage["rounds"]) != ["labels"]:
    sys.exit("this collection asks for more than this device gives")

memory = f"device-{name}.json"
if not os.path.exists(memory):
    truth, others = int(label), [c for c in range(classes) if c != int(label)]
    told = truth if secrets.randbelow(2**53) < keep * 2**53 else secrets.choice(others)
    with open(memory + ".part", "w") as file:
        file.write(json.dumps({"id": name, "label": told, "contacts": contacts}))
        file.flush()
        os.fsync(file.fileno())
    os.replace(memory + ".part", memory)

headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/x-ndjson"}
request = urllib.request.Request(url + "/reports", pathlib.Path(memory).read_bytes(), headers)
for wait in (0, 1, 2, 4, 8, 16):
    time.sleep(wait * (0.5 + secrets.randbelow(1000) / 1000))
    try:
        sys.exit(print(urllib.request.urlopen(request).read().decode()))
    except urllib.error.HTTPError as error:
        if error.code not in (429, 500, 502, 503, 504):
            sys.exit(f"refused: {error.code} {error.read().decode()}")
    except OSError:
        continue
sys.exit("the service is away: run this again")
