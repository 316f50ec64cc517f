-- TPC-H lineitem with the types of its specification and no keys (PyPI package tpchgen-cli makes the rows).
-- The file is read as (FORMAT csv, HEADER true).

CREATE TABLE lineitem (
    l_orderkey      bigint        NOT NULL,
    l_partkey       bigint        NOT NULL,
    l_suppkey       bigint        NOT NULL,
    l_linenumber    integer       NOT NULL,
    l_quantity      numeric(15,2) NOT NULL,
    l_extendedprice numeric(15,2) NOT NULL,
    l_discount      numeric(15,2) NOT NULL,
    l_tax           numeric(15,2) NOT NULL,
    l_returnflag    char(1)       NOT NULL,
    l_linestatus    char(1)       NOT NULL,
    l_shipdate      date          NOT NULL,
    l_commitdate    date          NOT NULL,
    l_receiptdate   date          NOT NULL,
    l_shipinstruct  char(25)      NOT NULL,
    l_shipmode      char(10)      NOT NULL,
    l_comment       varchar(44)   NOT NULL
);
