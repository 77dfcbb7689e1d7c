"""
Pure rules of one job: its states, orders, policies, deferral, universe, factory and what its next run asks for.
"""
