"""
Accounts of this machine: whose jobs an access point may look after, and acting with the rights of one of them.

    StrangerError    nothing can be done with the rights of somebody

`lookup` finds the account of an owner; `rights` acts with it, and is all that uses the rights of root for that.
"""
