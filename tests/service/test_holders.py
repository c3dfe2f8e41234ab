"""``examples/holders.py`` in a small form: five holders, two processes, lost answers; the service changes nothing."""

import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "holders.py"


def test_a_service_gives_what_one_process_gives_and_scores_newcomers(tmp_path):
    words = [
        sys.executable,
        str(EXAMPLE),
        "--small",
        "--records",
        "150",
        "--method",
        "lpgnn",
        "--folder",
        str(tmp_path),
    ]
    done = subprocess.run(words, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr[-2000:]
    assert "150 records of 5 holders" in done.stdout and "refused: 0" in done.stdout
    assert "classes equal, certificate equal" in done.stdout and "30 newcomers scored" in done.stdout
    lost = int(done.stdout.split(" answers were lost")[0].split(";")[-1].split()[0])
    assert lost >= 2
