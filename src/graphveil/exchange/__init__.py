"""The local model: everybody randomises their own record before it leaves, and nobody has to be trusted.

``randomizers``  what a client runs on its own features, label or contact list
``client``       memoised reports: one report per vertex and round, byte-identical whenever it is sent again
``collector``    takes reports of several holders, keeps rounds apart, estimates noisy data
``certificate``  what that costs per vertex, per edge and per holder, and what was sent in the clear
"""
