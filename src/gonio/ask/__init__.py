"""What is possible, exactly: who can win, who can tie, with proofs. Nothing here is imported until it is asked for."""
