"""A generated graph in memory and in folders of several blocks: what tests of blocks start from."""

from graphveil.graph import powerlaw_sbm
from graphveil.graph.data.splits import random_split
from graphveil.graph.folder import save_folder
from graphveil.graph.validate import validate


def generated(nodes):
    """Half of the people for training, a fifth for calibration; features in single precision, as folders hold them."""
    data = random_split(powerlaw_sbm(3, nodes=nodes, features=6, classes=4, homophily=0.9), 1, (0.5, 0.2, 0.3))
    data.x = data.x.float()
    return validate(data)


def in_folders(graph, made):
    """The graph in 1, 3 and 16 blocks; ``made`` makes an empty folder."""
    found = {blocks: made("folders") / str(blocks) for blocks in (1, 3, 16)}
    for blocks, folder in found.items():
        save_folder(graph, folder, blocks)
    return found
