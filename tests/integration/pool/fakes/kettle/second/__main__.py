from kettle.dummy import main

raise SystemExit(main("second"))
