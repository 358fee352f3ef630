"""NetBox and Nautobot: device types, racks, devices and cables as they exchange them."""
