"""
Who a credential is in the pool, and what its holder may do: map files, rules, bans, levels with their lists.

Everything here takes texts and values and gives decisions that name the lines they follow from. Files are read by
`kettle.runtime.access_files`.
"""
