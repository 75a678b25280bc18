"""Archives that are damaged, or made by hand to do harm, and what scoring makes of them."""
