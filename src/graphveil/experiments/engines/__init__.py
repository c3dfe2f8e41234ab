"""Where runs are executed: here, in processes of this machine, or on a Ray cluster."""
