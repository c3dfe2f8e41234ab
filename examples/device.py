"""A device that takes part in a collection with nothing but Python: it randomises its own label once and sends it.

    python examples/device.py URL-OF-COLLECTION TOKEN ID LABEL CONTACT...

Its label never leaves; what leaves is remembered in ``device-ID.json``, so a second run sends the same bytes. Its contacts are
sent in the clear, because this collection (method ``local``, edges raw) says so.
"""

import json
import os
import secrets
import sys
import time
import urllib.error
import urllib.request

url, token, name, label, *contacts = sys.argv[1:]
stage = json.load(urllib.request.urlopen(url))["protocol"]["stages"]["first"]
asked = stage["rounds"]["labels"]
if asked["kind"] != "label-response" or asked["epsilon"] > 4 or stage["raw"] != ["edges"] or len(stage["rounds"]) > 1:
    sys.exit("this collection asks for more than this device gives")

memory = f"device-{name}.json"
if not os.path.exists(memory):
    keep = secrets.randbelow(2**53) < asked["keep"] * 2**53  # the truth with this probability, else any other class
    others = [c for c in range(asked["classes"]) if c != int(label)]
    report = {"id": name, "label": int(label) if keep else secrets.choice(others), "contacts": contacts}
    with open(memory + ".part", "w") as file:
        file.write(json.dumps(report))
        os.fsync(file.fileno())
    os.replace(memory + ".part", memory)

headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/x-ndjson"}
for wait in (0, 1, 2, 4, 8, 16):
    time.sleep(wait * (0.5 + secrets.randbelow(1000) / 1000))
    try:
        with open(memory, "rb") as file:
            print(
                urllib.request.urlopen(urllib.request.Request(url + "/reports", file.read(), headers)).read().decode()
            )
        break
    except urllib.error.HTTPError as error:
        if error.code not in (429, 500, 502, 503, 504):
            sys.exit(f"refused: {error.code} {error.read().decode()}")
    except OSError:
        continue
