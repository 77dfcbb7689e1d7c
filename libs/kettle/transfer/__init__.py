"""
Moving files: what a job's lists mean, and the plugins that move files by URL.

    manifest    the lists of a job ad: items, URLs, remaps, plugins (pure)
    protocol    what plugins are asked and what they answer, in ads (pure)
    verdict     what an answer means for the job, in HTCondor's codes (pure)
    running     runs plugins, and gives up on those that hang
    plugins     our own plugins, by the same protocol
"""
