"""What tests are made of: scenarios, fakes behind the ports, and real embedded servers."""
