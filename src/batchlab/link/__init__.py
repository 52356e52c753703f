"""A link of known latency and bandwidth between workers: network namespaces of this machine, joined and shaped.

Nothing has a name in the system. A process of ours, the hub, holds the namespaces and the devices in them, and ends
with its parent, however that ends: then the kernel takes all of it away.
"""
