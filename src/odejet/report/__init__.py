"""Reports: a fit as text, as pictures and as a page."""
