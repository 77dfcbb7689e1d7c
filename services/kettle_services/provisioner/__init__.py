"""provisioner: makes the machines that the scaler orders, and removes them, through providers."""
