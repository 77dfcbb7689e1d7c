"""
The documents of PROMINENCE: jobs and workflows of containers, as people write them in JSON.

The structs accept the older forms of the documents too; `kettle.prominence` checks documents and reads them in one form.
"""
