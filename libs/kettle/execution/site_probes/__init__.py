"""
Probes of what a machine has from its site: software below `/cvmfs`, caches of XRootD, images, programs of the owner's.

A startd declares them in its settings and runs each in a process of its own, because what is probed may hang.
"""
