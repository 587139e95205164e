"""Learning to spot signs from three supervisors: batches, bags, losses, training."""
