while [ ! -e "go/$1" ]; do sleep 0.01; done
