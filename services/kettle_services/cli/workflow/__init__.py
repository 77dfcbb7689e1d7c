"""The parts of `kettle workflow`: documents of workflows read, checked and translated."""
