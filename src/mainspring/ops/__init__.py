"""What operators ask and order, decided and shaped once for every way of asking."""
