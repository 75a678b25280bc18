"""What the numbers of several systems say beside one another: how sure differences are, how alike measures rank."""
