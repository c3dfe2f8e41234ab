"""Files and foreign objects in and out: npz, tables, NetworkX and SciPy."""
