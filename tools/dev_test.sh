dev_test() { :; }
