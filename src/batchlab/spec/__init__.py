"""From spec files, built-in studies and the catalogue to checked sweeps."""
