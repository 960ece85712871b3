// The laws of a communicator on a device.
#include "comm_device_laws.cpp"
