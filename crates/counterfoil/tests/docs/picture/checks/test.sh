test "$(sh slug.sh 'Hello World!')" = hello-world
