"""What people and leased machines ask of a scaler, each part in its own module."""
