"""Search: from derivatives and from the box to optima."""
