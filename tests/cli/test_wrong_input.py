"""Every wrong input of every command: exit code 2, one line on stderr that names what to do, no traceback, nothing on stdout."""

import pytest

from graphveil.cli.app import COMMANDS
from tests.cli.test_bad_input import refused

DP = "train dp-mlp --data graph.npz"
SIZES = "--nodes 10 --features 3 --classes 2"
TABLES = "import --edges edges.csv --nodes nodes.csv"
LABELLED = f"{TABLES} --id id --label kind=a|b"
HUGE = "9" * 400

# what is typed, in a folder with a graph, two tables, a book and a run; and a word that says what to do about it
WRONG = {
    "nonsense": "Known are: datasets",
    "train": "METHOD",
    "trian": "Did you mean 'train'",
    "datasets corra": "did you mean cora",
    "methods balot": "did you mean 'ballot'",
    # promises
    f"{DP}": "--epsilon",
    f"{DP} --epsilon -1": "epsilon must be positive",
    f"{DP} --epsilon 0": "epsilon must be positive",
    f"{DP} --epsilon nan": "epsilon must be",
    f"{DP} --epsilon much": "--epsilon",
    f"{DP} --epsilon 1 --delta -1": "delta must",
    f"{DP} --epsilon 1 --delta 0": "delta must",
    f"{DP} --epsilon 1 --delta nan": "delta must",
    f"{DP} --epsilon 1 --delta 1": "delta must",
    f"{DP} --epsilon 1 --delta 7": "delta must",
    f"{DP} --epsilon 1e-15 --delta 1e-15": "ask for larger",
    f"{DP} --epsilon 1 --level galaxy": "known are: edge, k-neighbor, node, local, none",
    f"{DP} --epsilon 1 --adjacency friends": "record",
    f"{DP} --epsilon 1 --relation maybe": "zero-out",
    f"{DP} --epsilon 1 --level k-neighbor": "--k",
    f"{DP} --epsilon 1 --level k-neighbor --k {HUGE}": "k must",
    f"{DP} --epsilon 1 --k 2": "--k",
    f"{DP} --epsilon 1 --directed": "--directed",
    f"{DP} --epsilon 1 --adjacency bounded-degree": "max_degree",
    "train ballot --data graph.npz --epsilon 1 --level k-neighbor --k 0": "k of at least 1",
    "train gap --data graph.npz --epsilon 1 --level edge --directed --adjacency edge-undirected": "contradicts",
    "train gap --data graph.npz --epsilon 1 --adjacency node": "does not cover",
    "train gap --data graph.npz --epsilon 1 --level k-neighbor --k 1 --relation replace": "does not cover",
    "train gap --data graph.npz --epsilon 1 --level edge --relation replace": "relation",
    "train mlp --data graph.npz --epsilon 1 --level node": "does not cover",
    "train mlp --data graph.npz --epsilon 1 --level none": "--epsilon",
    # methods and their options
    "train dp-mlpp --data graph.npz --epsilon 1": "did you mean 'dp-mlp'",
    f"{DP} --epsilon 1 --mode fast": "it has: sound, published",
    f"{DP} --epsilon 1 --set depth=4": "it has: ",
    f"{DP} --epsilon 1 --set steps": "key=value",
    f"{DP} --epsilon 1 --set steps=many": "steps",
    f"{DP} --epsilon 1 --set clip=NaN": "clip",
    f"{DP} --epsilon 1 --set network=paper --set batch_size=0": "batch_size",
    f"{DP} --epsilon 1 --set learning_rate=-1": "learning_rate",
    f"{DP} --epsilon 1 --set steps={HUGE}": "steps",
    f"{DP} --epsilon 1 --speed 9": "--speed",
    f"{DP} --epsilon 1 --seed -4": "seed",
    f"{DP} --epsilon 1 --release-accuracy": "it has: ",
    "train gap --data graph.npz --epsilon 1 --level edge --set dropout=2": "dropout",
    "train auto --data graph.npz --epsilon 1 --cover-edges some": "released or all",
    # data, splits, outputs
    "train dp-mlp --epsilon 1": "--data NAME|PATH",
    "train dp-mlp extra --data graph.npz --epsilon 1": "follow --reports",
    "train dp-mlp --data corra --epsilon 1": "did you mean cora",
    f"{DP} --epsilon 1 --split half": "known are random",
    f"{DP} --epsilon 1 --split random:50/50": "three percentages",
    f"{DP} --epsilon 1 --prepare magic": "known are largest-component",
    f"{DP} --epsilon 1 --class-weights fraud": "as in fine=1,fraud=20",
    f"{DP} --epsilon 1 --class-weights fraud=2": "the classes are: 0, 1, 2",
    f"{DP} --epsilon 1 --class-weights 0=heavy": "--class-weights takes numbers",
    f"{DP} --epsilon 1 --sign key.pem": "give --out DIR",
    f"{DP} --epsilon 1 --sign key.pem --out x": "key.pem cannot be read",
    f"{DP} --epsilon 1 --holders 2": "belongs to --level local",
    f"{DP} --epsilon 1 --mean-degree 3": "belongs to --reports",
    "train local --reports none.parquet": "no such file",
    # month after month
    f"{DP} --previous none": "written by 'train --out'",
    f"{DP} --previous run --epsilon 1 --level edge": "ask for the same level",
    f"{DP} --previous run --level none": "--previous follows what a curator spends",
    "train lpgnn --reports none.csv --previous run": "drop --previous",
    # books
    f"{DP} --epsilon 1 --budget none.db": "'graphveil budget init' makes one",
    f"{DP} --epsilon 9 --adjacency record --budget book.db": "a run of up to epsilon 4 still fits",
    "budget shwo book.db": "Did you mean 'show'",
    "budget init new.db": "--epsilon",
    "budget init new.db --epsilon 4": "needs --delta, or --nodes",
    "budget init new.db --epsilon -4 --nodes 10": "epsilon must be positive",
    "budget init new.db --epsilon 4 --nodes 10 --level local": "--level local takes no --epsilon",
    "budget init new.db --epsilon 4 --nodes 10 --level nod": "known are",
    "budget init no/folder/new.db --epsilon 4 --nodes 10": "there is no folder",
    "budget init book.db --epsilon 4 --nodes 10": "'budget open' adds an account",
    "budget open book.db --epsilon 9 --nodes 10 --adjacency record": "never changed",
    "budget show none.db": "'graphveil budget init' makes one",
    "budget show nodes.csv": "not a usable budget book",
    "budget show book.db --plot x.bmp": "--plot writes .svg",
    "budget export book.db --out x.xml": ".json, .jsonl or .csv",
    "budget verify book.db --run nowhere": "does not exist",
    # tables in
    "import --out x.npz": "--edges",
    "import --edges edges.csv --nodes none.csv --out x.npz": "no such file",
    f"{TABLES} --id account --out x.npz": "it has id, kind, age",
    f"{TABLES} --id id --label sort --out x.npz": "it has id, kind, age",
    f"{LABELLED} --features age=100..18 --out x.npz": "LOW must be below HIGH",
    f"{LABELLED} --features height=0..2 --out x.npz": "it has id, kind, age",
    f"{LABELLED} --features age=18..100 --out x.txt": "ends in .npz",
    # advice, plans, forecasts
    "advise": "give --protect",
    "advise --protect me": "--protect takes person, traces",
    "advise --protect person --public-predictions perhaps": "takes yes or no",
    "advise --protect person --runs 0": "whole number",
    "plan gap --level node --epsilon 2": "--nodes, --features and --classes",
    "plan gap --nodes 0 --features 3 --classes 2 --epsilon 2": "at least 1",
    "plan gap --nodes 10 --features 3 --classes 1 --epsilon 2": "at least 2",
    f"plan balot {SIZES} --epsilon 2": "did you mean 'ballot'",
    "forecast ballot": "--stand-in NAME",
    f"forecast ballot {SIZES} --epsilons x": "--epsilons takes numbers",
    f"forecast mlpp {SIZES} --epsilons 1": "did you mean 'mlp'",
    # runs
    "predict none --data graph.npz": "written by 'train --out'",
    "predict run": "give each node its own prediction",
    "predict run --only unlabelled": "needs --data",
    "predict run --data graph.npz --only some": "all or unlabelled",
    "predict run --data graph.npz --out p.txt": ".csv, .parquet, .json",
    "predict run --data graph.npz --of-class fraud": "the classes are: 0, 1, 2",
    "predict run --data graph.npz --top 0": "--top",
    "predict run --data graph.npz --access all": "own-row, public-graph, charge",
    "certificate none": "written by 'train --out'",
    "verify none": "written by 'train --out'",
    # attacks, audits, reports of people
    "attack link-tellr --run run --data graph.npz": "known are: link-teller",
    "attack link-teller --data graph.npz": "--target METHOD or --run RUN",
    "audit": "say --all",
    "audit gapp": "did you mean 'gap'",
    "audit gap --epsilon -1": "epsilon must be positive",
    "privatize nodes.csv --out r.parquet": "give --features-epsilon",
    "privatize none.csv --features-epsilon 1 --out r.parquet": "no such file",
    "collect": "REPORTS",
    "collect none.csv --out x.npz": "no such file",
    "serve --port 99999999": "--port",
    "serve --store none.ini": "such as sqlite:///service.db",
    # experiments
    "sweep none.yaml": "give a specification",
    "sweep broken.yaml": "not YAML",
    "sweep odd.yaml": "did you mean 'dp-mlp'",
    "sweep attacked.yaml --budget book.db": "without --budget",
    "results none.jsonl": "give a store of 'graphveil sweep'",
    "results nodes.csv": "read a store or a .jsonl export",
    "compare --data graph.npz": "--methods",
    "compare --methods dp-mlp --data graph.npz --epsilons one": "--epsilons takes numbers",
    "compare --methods dp-mlp --data graph.npz --epsilons 1 --plot x.bmp": "--plot writes .svg",
    "compare --methods dp-mlp --data graph.npz --epsilons 1 --seeds few": "as in 100-104",
    "compare --methods lpgnn --data graph.npz --level local --labels-epsilon x": "--labels-epsilon takes numbers",
    "reproduce gapp": "known are: dpar",
    "report none.jsonl --out x.html": "give a store of 'graphveil sweep'",
    "bench speed": "Known are: dp-gradients, scale, end-to-end, aggregate",
}
SPECIFICATION = "name: {}\nmethods: [{}]\ndata: [graph.npz]\npromises: [{{level: node}}]\nepsilons: [1]\nseeds: 1\n"


@pytest.fixture
def folder(tmp_path, graph_file, graphveil, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    graph_file.rename("graph.npz")
    files = {
        "nodes.csv": "id,kind,age\n1,a,20\n2,b,30\n",
        "edges.csv": "source,target\n1,2\n",
        "broken.yaml": "name: [",
        "odd.yaml": SPECIFICATION.format("odd", "dp-mlpp"),
        "attacked.yaml": SPECIFICATION.format("attacked", "dp-mlp") + "attacks: [membership]\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    typed = request.getfixturevalue("typed").split()
    if "book.db" in typed:
        graphveil("budget", "init", "book.db", "--epsilon", 4, "--nodes", 100, "--adjacency", "record")
    if "run" in typed:
        assert (
            graphveil("train", "dp-mlp", "--data", "graph.npz", "--epsilon", 1, "--set", "steps=2", "--out", "run")[0]
            == 0
        )


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("typed", WRONG)
def test_wrong_input_is_one_line_that_names_the_fix(graphveil, typed):
    refused(graphveil(*typed.split()), WRONG[typed])


def test_there_are_wrong_inputs_of_every_command():
    assert len(WRONG) >= 40
    assert set(COMMANDS) <= {typed.split()[0] for typed in WRONG}
