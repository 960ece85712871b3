// Laws of communicators over memory of devices.
#include "comm_device_laws.cpp"
