"""
The pages of a pool, for browsers.

Each is declared as data (`page.Page`) and answered from the same questions as the REST interface, so filters, sorting, paging and
rights are the same.  HTML is made here, by templates whose views are typed structs; all of it can be used without JavaScript.
"""
