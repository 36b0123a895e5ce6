sh shelf.sh add milk
[ "$(sh shelf.sh list)" = milk ]
