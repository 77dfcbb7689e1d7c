"""`kettle pool`: pools of workers that come when work waits and go when it is done."""
