"""``python -m graphveil``: the command line, where the ``graphveil`` script is not on the path."""

from graphveil.cli.app import main

if __name__ == "__main__":
    main()
