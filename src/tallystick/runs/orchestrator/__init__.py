"""How a run is driven: started or resumed, from state to state, until a final one."""
