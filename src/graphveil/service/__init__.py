"""The local model as a running system: collections, tokens, training jobs, the GNN API and a dashboard, over HTTP."""
