"""The demonstration of an analysis facility, `kettle demo facility`, and the parts that it is made of."""
