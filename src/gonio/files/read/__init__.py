"""From a file to a Head; one format a module. `choose` tells which fits."""
