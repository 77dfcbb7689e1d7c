"""The parts of `kettle dag`: DAG files checked and drawn."""
