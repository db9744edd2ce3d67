# Installed for others: the client library and the protos. The programs are
# installed as the runtime component.
