from .expand import expand as expand
from .read import read_experiment as read_experiment
from .run import Run as Run
from .spec import Experiment as Experiment
from .store import Store as Store
from .summary import summarize as summarize
from .sweep import sweep as sweep
