"""The local model: everybody randomises their own record before it leaves, and nobody has to be trusted."""
