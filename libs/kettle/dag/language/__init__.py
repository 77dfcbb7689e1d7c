"""
The language of DAG files, line by line.

    lines        a file into lines: comments, continuations, descriptions that stand in it
    words        a line into words: blanks, quotes, `name=value`
    keywords     the names of the commands, and the form of each
    commands     each command as a value
    nodes        words into the commands that make nodes
    modifiers    words into the commands that say something of nodes
    files        words into the commands that name files and settings
    reading      which of these reads a line
"""
