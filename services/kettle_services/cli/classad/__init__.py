"""The parts of `kettle classad`: ads and expressions read, evaluated, converted, matched and explained."""
