"""How many inputs a fuzz test tries: few in the suite, ``make fuzz`` says more (``GRAPHVEIL_FUZZ``)."""

import os

from hypothesis import HealthCheck, settings

EXAMPLES = int(os.environ.get("GRAPHVEIL_FUZZ", "60"))
bounded = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=EXAMPLES <= 60,
    suppress_health_check=list(HealthCheck),
    database=None,
)
