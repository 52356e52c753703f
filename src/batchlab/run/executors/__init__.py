"""Who runs packs: worker processes, gangs, torchrun, a Ray cluster, this process. `executor` is their contract."""
