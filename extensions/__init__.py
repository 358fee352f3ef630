"""Extensions that ship with polarfab: each registers what it adds, as other packages can."""
