package windrow;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.reflect.Method;
import java.net.URI;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.catalog.BucketSpec;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTablePartition;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalog;
import scala.Option;
import scala.Tuple2;
import scala.collection.JavaConverters;

/** Returns tables of Spark's catalog and their partitions as JSON, many in one answer. */
public final class CatalogReader {
  private final ObjectMapper mapper = new ObjectMapper();

  public CatalogReader() {}

  /** Returns the tables with the given names (one per line); an error for each unknown one. */
  public String tables(ExternalCatalog catalog, String database, String names) throws Exception {
    List found = new ArrayList();
    String[] lines = names.split("\n");
    Map together = together(catalog, database, lines);
    for (int at = 0; at < lines.length; at++) {
      Map table;
      try {
        CatalogTable one = (CatalogTable) together.get(lines[at]);
        table = described(one != null ? one : catalog.getTable(database, lines[at]));
      } catch (Throwable error) {
        table = new LinkedHashMap();
        table.put("error", String.valueOf(error.getMessage()));
      }
      table.put("database", database);
      table.put("name", lines[at]);
      found.add(table);
    }
    return mapper.writeValueAsString(found);
  }

  /** Returns a table whose entry is known. */
  public String table(CatalogTable entry) throws Exception {
    return mapper.writeValueAsString(described(entry));
  }

  /** Returns tables by name, fetched in one call; none if the catalog cannot return all of them. */
  private static Map together(ExternalCatalog catalog, String database, String[] names) {
    Map found = new HashMap();
    try {
      Object wanted = JavaConverters.asScalaBufferConverter(Arrays.asList(names)).asScala();
      SEQ list = (SEQ) ((scala.collection.mutable.Buffer) wanted).toSeq();
      scala.collection.Iterator tables = catalog.getTablesByName(database, list).iterator();
      while (tables.hasNext()) {
        CatalogTable table = (CatalogTable) tables.next();
        found.put(table.identifier().table(), table);
      }
    } catch (Throwable error) {
      found.clear();
    }
    return found;
  }

  /** Returns values, location, SerDe, input format and SerDe's properties of all partitions. */
  public String partitions(ExternalCatalog catalog, String database, String table, String columns)
      throws Exception {
    String[] names = columns.split("\n");
    List found = new ArrayList();
    scala.collection.Iterator partitions =
        catalog.listPartitions(database, table, Option.apply(null)).iterator();
    while (partitions.hasNext()) {
      CatalogTablePartition partition = (CatalogTablePartition) partitions.next();
      List values = new ArrayList();
      for (int at = 0; at < names.length; at++) {
        values.add(partition.spec().apply(names[at]));
      }
      List one = new ArrayList();
      CatalogStorageFormat storage = partition.storage();
      one.add(values);
      one.add(location(storage));
      one.add(orNull(storage.serde()));
      one.add(orNull(storage.inputFormat()));
      one.add(map(storage.properties()));
      found.add(one);
    }
    return mapper.writeValueAsString(found);
  }

  /**
   * Returns the values, one per line, of a partition whose columns in Hive differ from its table's;
   * null if there is none. Hive's classes may come from another class loader.
   */
  public String withOtherColumns(Object hiveCatalog, String database, String table)
      throws Exception {
    Object client = call(hiveCatalog, "client", new Object[0]);
    String wanted;
    Iterator partitions;
    // Spark's own calls hold the same lock.
    synchronized (call(client, "clientLoader", new Object[0])) {
      Object store = call(call(client, "client", new Object[0]), "getMSC", new Object[0]);
      wanted = columns(call(store, "getTable", new Object[] {database, table}));
      Object[] all = new Object[] {database, table, Short.valueOf((short) -1)};
      partitions = ((List) call(store, "listPartitions", all)).iterator();
    }
    while (partitions.hasNext()) {
      Object partition = partitions.next();
      if (!columns(partition).equals(wanted)) {
        List values = (List) call(partition, "getValues", new Object[0]);
        return String.join("\n", (String[]) values.toArray(new String[0]));
      }
    }
    return null;
  }

  /** Returns the names of all partitions, one per line; unlike Spark, fetches no table first. */
  public String partitionNames(Object hiveCatalog, String database, String table)
      throws Exception {
    Object client = call(hiveCatalog, "client", new Object[0]);
    synchronized (call(client, "clientLoader", new Object[0])) {
      Object[] all = new Object[] {database, table, Short.valueOf((short) -1)};
      Object hive = call(client, "client", new Object[0]);
      List names = (List) call(hive, "getPartitionNames", all);
      return String.join("\n", (String[]) names.toArray(new String[0]));
    }
  }

  private static String columns(Object owner) throws Exception {
    Object storage = call(owner, "getSd", new Object[0]);
    Iterator columns = ((List) call(storage, "getCols", new Object[0])).iterator();
    StringBuilder found = new StringBuilder();
    while (columns.hasNext()) {
      Object column = columns.next();
      found.append(call(column, "getName", new Object[0])).append(' ');
      found.append(call(column, "getType", new Object[0])).append('\n');
    }
    return found.toString();
  }

  /** Calls a method by its name and arguments, wherever it is declared. */
  private static Object call(Object target, String name, Object[] arguments) throws Exception {
    for (Class of = target.getClass(); of != null; of = of.getSuperclass()) {
      Method[] methods = of.getDeclaredMethods();
      for (int at = 0; at < methods.length; at++) {
        if (methods[at].getName().equals(name) && takes(methods[at], arguments)) {
          methods[at].setAccessible(true);
          return methods[at].invoke(target, arguments);
        }
      }
    }
    throw new NoSuchMethodException(target.getClass().getName() + "." + name);
  }

  private static boolean takes(Method method, Object[] arguments) {
    Class[] types = method.getParameterTypes();
    if (types.length != arguments.length) {
      return false;
    }
    for (int at = 0; at < types.length; at++) {
      boolean isShort = types[at] == Short.TYPE && arguments[at] instanceof Short;
      if (!isShort && !types[at].isInstance(arguments[at])) {
        return false;
      }
    }
    return true;
  }

  private Map described(CatalogTable table) {
    Map found = new LinkedHashMap();
    CatalogStorageFormat storage = table.storage();
    found.put("kind", table.tableType().name());
    found.put("provider", orNull(table.provider()));
    found.put("schema", table.schema().json());
    found.put("partition_columns", list(table.partitionColumnNames().iterator()));
    found.put("lists_partitions", Boolean.valueOf(table.tracksPartitionsInCatalog()));
    found.put("location", location(storage));
    found.put("serde", orNull(storage.serde()));
    found.put("input_format", orNull(storage.inputFormat()));
    found.put("options", map(storage.properties()));
    found.put("properties", map(table.properties()));
    if (table.bucketSpec().isDefined()) {
      BucketSpec buckets = (BucketSpec) table.bucketSpec().get();
      found.put("bucket_count", Integer.valueOf(buckets.numBuckets()));
      found.put("bucket_columns", list(buckets.bucketColumnNames().iterator()));
      found.put("sort_columns", list(buckets.sortColumnNames().iterator()));
    }
    return found;
  }

  private static String location(CatalogStorageFormat storage) {
    return storage.locationUri().isDefined()
        ? new Path((URI) storage.locationUri().get()).toString()
        : null;
  }

  private static Object orNull(Option option) {
    return option.isDefined() ? option.get() : null;
  }

  private static List list(scala.collection.Iterator items) {
    List found = new ArrayList();
    while (items.hasNext()) {
      found.add(items.next());
    }
    return found;
  }

  private static Map map(scala.collection.Map map) {
    Map found = new LinkedHashMap();
    scala.collection.Iterator items = map.iterator();
    while (items.hasNext()) {
      Tuple2 item = (Tuple2) items.next();
      found.put(item._1(), item._2());
    }
    return found;
  }
}
