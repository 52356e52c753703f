"""From step times to seconds: throughput, links between workers, and plans."""
